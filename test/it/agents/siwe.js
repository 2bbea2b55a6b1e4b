// A site that lets accounts sign in (EIP-4361), with the siwe package: `ask ADDRESS` prints what is to be signed, `check` reads
// {message, signature, nonce, domain} from standard input and prints whose it is.
const { SiweMessage, generateNonce } = require(`${process.argv[2]}/node_modules/siwe`);

async function main(what, address) {
  if (what === "ask") {
    const nonce = generateNonce();
    const message = new SiweMessage({ domain: "shop.example.org", address, statement: "Sign in to the shop.", uri: "https://shop.example.org/in", version: "1", chainId: 31337, nonce }).prepareMessage();
    return { message, nonce };
  }
  const { message, ...rest } = JSON.parse(require("fs").readFileSync(0));
  return new SiweMessage(message).verify(rest).then((r) => ({ address: r.success && r.data.address }), (r) => ({ address: false, why: r.error.type }));
}
main(...process.argv.slice(3)).then((value) => console.log(JSON.stringify(value)));
