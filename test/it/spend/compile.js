// Compiles a token of OpenZeppelin's, with a function that it had until version 4, and prints the code that makes it.
const fs = require("fs");
const solc = require("solc");

const source = `pragma solidity ^0.8.20;
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
contract Coin is ERC20 {
  constructor() ERC20("Coin", "COIN") { _mint(msg.sender, 1000000); }
  function increaseAllowance(address spender, uint256 more) external returns (bool) { _approve(msg.sender, spender, allowance(msg.sender, spender) + more); return true; }
}`;
const input = { language: "Solidity", sources: { "Coin.sol": { content: source } }, settings: { evmVersion: "paris", outputSelection: { "*": { "*": ["evm.bytecode.object"] } } } };
const output = JSON.parse(solc.compile(JSON.stringify(input), { import: (path) => ({ contents: fs.readFileSync(`node_modules/${path}`, "utf8") }) }));
if (!output.contracts) throw new Error(JSON.stringify(output.errors));
console.log(`0x${output.contracts["Coin.sol"].Coin.evm.bytecode.object}`);
