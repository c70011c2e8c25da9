"""A payment provider as they are: it charges once for each Idempotency-Key, and has bad moments.

    python3 provider.py 8002 --cut-every 20 --slow-every 50

    POST /charges  {"order": 1, "amount": 1990, "card": "card-of-ann"}; a card whose name begins with "expired" is declined
    GET  /charges  the charges of each order, and how often they were asked for
"""
import argparse, hashlib, json, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

arguments = argparse.ArgumentParser()
arguments.add_argument("port", type=int)
arguments.add_argument("--cut-every", type=int, default=0, help="of so many requests one is not answered: its connection is cut")
arguments.add_argument("--slow-every", type=int, default=0, help="of so many requests one takes --slow seconds")
arguments.add_argument("--slow", type=float, default=3)
arguments.add_argument("--takes", type=float, default=0.1, help="seconds that all others take")
arguments.add_argument("--forgetful", action="store_true", help="remember no key, and so charge twice")


class Provider:
    def __init__(self, forgetful):
        self.forgetful = forgetful
        self.lock = threading.Lock()
        self.requests = self.repeats = 0
        self.answers = {}  # by key: the body's fingerprint, and status and answer; None while the first is at work
        self.charges = {}  # by order: the ids of its charges

    def number(self):
        with self.lock:
            self.requests += 1
            return self.requests

    def handle(self, key, body, takes):
        """Gives status and answer. A key that came before gets what it got then."""
        fingerprint = hashlib.sha256(body).digest()
        with self.lock:
            if key in self.answers and not self.forgetful:
                self.repeats += 1
                first, answer = self.answers[key]
                if first != fingerprint:
                    return 422, {"error": "this key came with another body before"}
                return answer or (409, {"error": "the first request with this key is still at work"})
            self.answers[key] = fingerprint, None
        time.sleep(takes)
        with self.lock:
            answer = self.charge(body)
            self.answers[key] = fingerprint, answer
            return answer

    def charge(self, body):
        try:
            command = json.loads(body)
            order, amount, card = int(command["order"]), int(command["amount"]), str(command["card"])
        except (ValueError, KeyError, TypeError):
            return 422, {"error": "a charge needs an order, an amount and a card"}
        if card.startswith("expired"):
            return 402, {"error": "the card was declined"}
        charges = self.charges.setdefault(order, [])
        charges.append(f"charge-{order}-{len(charges) + 1}")
        return 200, {"id": charges[-1], "order": order, "amount": amount}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        with provider.lock:
            self.answer(200, {"requests": provider.requests, "repeats": provider.repeats, "charges": provider.charges})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key = self.headers.get("Idempotency-Key")
        if not key:
            return self.answer(400, {"error": "Idempotency-Key is missing"})
        number = provider.number()
        cut = options.cut_every and number % options.cut_every == 0
        slow = options.slow_every and number % options.slow_every == 0
        if cut and number // options.cut_every % 2 == 1:  # half of them before the charge, half of them after it
            self.close_connection = True
            return
        status, answer = provider.handle(key, body, options.slow if slow else options.takes)
        if cut:
            self.close_connection = True
            return
        self.answer(status, answer)

    def answer(self, status, what):
        text = json.dumps(what).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # that is one who asked and is gone, such as a relay that died
            super().handle_error(request, client_address)


options = arguments.parse_args()
provider = Provider(options.forgetful)
server = Server((os.environ.get("HOST", "127.0.0.1"), options.port), Handler)
print("provider: listening on port", server.server_port, flush=True)
server.serve_forever()
