"""Describes the latest block with the help of a model. The client of the API that every agent finds in its sandbox needs no package."""

import json
import os
import time
import urllib.error
import urllib.request

URL = os.environ["ASSEGAI_API_PROXY"]
HEADERS = {"Content-Type": "application/json", "X-Assegai-Agent-ID": os.environ["ASSEGAI_AGENT_ID"],
           "X-Assegai-Agent-Token": os.environ["ASSEGAI_AGENT_TOKEN"]}
CHAIN = "eip155:31337"


def ask(path, body):
    try:
        with urllib.request.urlopen(urllib.request.Request(URL + path, json.dumps(body).encode(), HEADERS)) as response:
            return json.load(response)
    except urllib.error.HTTPError as e:
        raise RuntimeError(json.load(e)["error"]) from None


def log(level, message, data=None):
    ask("/agent/log", {"level": level, "message": message, "data": data})


def query(method, *params):
    return ask("/agent/query-chain", {"chain": CHAIN, "method": method, "params": list(params)})["result"]


EVERY_S = 600


def turn():
    block = query("eth_getBlockByNumber", "latest", False)
    facts = {"number": int(block["number"], 16), "transactions": len(block["transactions"]), "gasUsed": int(block["gasUsed"], 16)}
    log("info", f"block {facts['number']}", facts)
    prompt = f"Describe this block in one sentence: {json.dumps(facts)}"
    answer = ask("/api/openai/v1/chat/completions", {"model": "gpt-4o-mini", "max_tokens": 100, "messages": [{"role": "user", "content": prompt}]})
    log("success", answer["choices"][0]["message"]["content"])


while True:
    try:
        turn()
    except RuntimeError as e:
        log("error", str(e))
    time.sleep(EVERY_S)
