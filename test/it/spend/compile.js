// Compiles a contract and prints the code that makes it: a token of OpenZeppelin's, with a function that it had until version 4, or the part of
// Permit2 that keeps allowances.
const fs = require("fs");
const solc = require("solc");

const source = `pragma solidity ^0.8.20;
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import "@openzeppelin/contracts/utils/Multicall.sol";
contract Coin is ERC20, ERC20Permit, Multicall {
  constructor() ERC20("Coin", "COIN") ERC20Permit("Coin") { _mint(msg.sender, 1000000); }
  function increaseAllowance(address spender, uint256 more) external returns (bool) { _approve(msg.sender, spender, allowance(msg.sender, spender) + more); return true; }
}
contract Permit2 {
  struct Allowed { uint160 amount; uint48 expiration; uint48 nonce; }
  mapping(address => mapping(address => mapping(address => Allowed))) public allowance;
  function approve(address token, address spender, uint160 amount, uint48 expiration) external {
    Allowed storage a = allowance[msg.sender][token][spender];
    a.amount = amount;
    a.expiration = expiration == 0 ? uint48(block.timestamp) : expiration;
  }
}`;
const input = { language: "Solidity", sources: { "Coin.sol": { content: source } }, settings: { evmVersion: "cancun", outputSelection: { "*": { "*": ["evm.bytecode.object"] } } } };
const output = JSON.parse(solc.compile(JSON.stringify(input), { import: (path) => ({ contents: fs.readFileSync(`node_modules/${path}`, "utf8") }) }));
if (!output.contracts) throw new Error(JSON.stringify(output.errors));
console.log(`0x${output.contracts["Coin.sol"][process.argv[2] || "Coin"].evm.bytecode.object}`);
