"""A shop: takes orders over HTTP, and hears what became of their charges.

    DATABASE_URL=postgres://user:password@host/shop python3 shop.py 8001

    POST /orders          {"number": 1, "amount": 1990, "card": "card-of-ann"}
    GET  /orders          all of them
    POST /charge-results  what outboxd tells of the charges
"""
import json, os, sys, uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

DATABASE_URL = os.environ["DATABASE_URL"]
if DATABASE_URL.startswith("mysql:"):
    import pymysql as driver
else:
    import psycopg2 as driver


def connect():
    if driver.__name__ == "psycopg2":
        return driver.connect(DATABASE_URL)
    url = urlsplit(DATABASE_URL)
    return driver.connect(host=url.hostname, port=url.port, user=url.username,
                          password=unquote(url.password or ""), database=url.path[1:])


@contextmanager
def transaction():
    connection = connect()
    try:
        yield connection.cursor()
        connection.commit()
    finally:
        connection.close()  # rolls back what was not committed


def place_order(number, amount, card):
    """Writes the order and the command to charge it: in one transaction, so that both are there or neither."""
    message = str(uuid.uuid4())
    payload = json.dumps({"order": number, "amount": amount, "card": card})
    with transaction() as cursor:
        cursor.execute("INSERT INTO orders (number, amount, charge_message) VALUES (%s, %s, %s)", (number, amount, message))
        cursor.execute("INSERT INTO outbox (id, aggregateid, type, payload) VALUES (%s, %s, 'charge_order', %s)",
                       (message, str(number), payload))


def hear_of_charge(key, told):
    """Marks the order by what became of its charge_order. key is the same whenever this is told again."""
    status = "failed"
    if told["state"] == "done":
        status = "paid"
    elif told["reason"] == "rejected":
        status = "declined"
    with transaction() as cursor:
        try:
            cursor.execute("INSERT INTO processed_message (id) VALUES (%s)", (key,))
        except driver.IntegrityError:
            return  # a repeat: all of this was done before
        # Results can overtake each other. Paid stays paid; otherwise the latest life of the message counts.
        cursor.execute("""UPDATE orders SET status = %s, charge = %s, charge_life = %s
                          WHERE charge_message = %s AND charge_life <= %s AND status <> 'paid'""",
                       (status, told["result"], told["replays"], told["id"], told["replays"]))
        if cursor.rowcount == 1 and status == "paid":
            cursor.execute("SELECT number FROM orders WHERE charge_message = %s", (told["id"],))
            number, = cursor.fetchone()
            cursor.execute("INSERT INTO outbox (aggregatetype, aggregateid, type, payload) VALUES ('orders', %s, 'order_paid', %s)",
                           (str(number), json.dumps({"order": number, "charge": told["result"]})))


def all_orders():
    with transaction() as cursor:
        cursor.execute("SELECT number, amount, status, charge, charge_message FROM orders ORDER BY number")
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row)) for row in cursor.fetchall()]


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, "\n".join(json.dumps(order) for order in all_orders()))

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            if self.path == "/orders":
                place_order(**json.loads(body))
                self.answer(201, "thank you")
            elif self.path == "/charge-results":
                hear_of_charge(self.headers["Idempotency-Key"], json.loads(body))
                self.answer(200, "heard")
            else:
                self.answer(404, "nothing is here")
        except (ValueError, TypeError, driver.IntegrityError) as error:
            self.answer(422, f"refused: {error}")
        except Exception as error:  # such as a database that is away: outboxd comes again
            print(error, file=sys.stderr, flush=True)
            self.answer(500, "it did not work")

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text.encode()) + 1))
        self.end_headers()
        self.wfile.write(text.encode() + b"\n")

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # that is one who asked and is gone, such as a relay that died
            super().handle_error(request, client_address)


server = Server((os.environ.get("HOST", "127.0.0.1"), int(sys.argv[1])), Shop)
print("shop: listening on port", server.server_port, flush=True)
server.serve_forever()
