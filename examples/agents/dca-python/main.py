"""Sends the same amount to the same address once an hour, if a person approves. The client of the API that every agent finds in its sandbox needs no package."""

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


EVERY_S = 3600
TO = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
WEI = "10000000000000000"  # 0.01


def turn():
    sent = ask("/agent/request-transaction", {"chain": CHAIN, "to": TO, "value": WEI})
    log("success", f"sent {WEI} wei", {"txHash": sent["txHash"]})


while True:
    try:
        turn()
    except RuntimeError as e:
        log("error", str(e))
    time.sleep(EVERY_S)
