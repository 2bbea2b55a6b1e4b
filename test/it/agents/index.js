// The agent of the tests: tells its environment, then waits. What is tried, is run in its sandbox beside it.
const fs = require("fs");
const { AssegaiSDK } = require("./sdk");

fs.writeFileSync("/agent-workspace/env.json", JSON.stringify(process.env));
fs.writeFileSync("/tmp/env", JSON.stringify(process.env)); // the workspace may still have that of an earlier start
fs.renameSync("/tmp/env", "/tmp/env.json");
fs.appendFileSync("/agent-workspace/starts", "x");
console.log("hello on stdout");
console.error("hello on stderr");
process.on("SIGTERM", () => { console.log("bye"); process.exit(0); });
new AssegaiSDK().log("success", "hello by the API", { answer: 42 }).catch((e) => console.error(`no log: ${e.message}`));
let n = 0;
setInterval(() => { if (fs.existsSync("/agent-workspace/count")) console.log(`line ${++n}`); }, 50);
