# A web server around receive of docs/receiving.md, whose file RECEIVE names, and a charge. Its port is the argument.
import json
import os
import runpy
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2


def charge(cursor, body):
    command = json.loads(body)
    if not isinstance(command["order"], int):
        raise ValueError("no order")
    cursor.execute("INSERT INTO charge (order_id) VALUES (%s) RETURNING number", (command["order"],))
    (number,) = cursor.fetchone()
    if "until" in command:  # so long does the work take
        open(command["until"] + ".begun", "w").close()
        while not os.path.exists(command["until"]):
            time.sleep(0.02)
    return json.dumps({"id": f"charge-{number}"})


receive = runpy.run_path(os.environ["RECEIVE"], {"charge": charge})["receive"]
where = dict(zip(("host", "port", "user", "password", "dbname"), (os.environ["SHOP_" + name] for name in ("HOST", "PORT", "USER", "PASSWORD", "DATABASE"))))


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        db = psycopg2.connect(**where)
        try:
            status, answer = receive(db, {name.lower(): value for name, value in self.headers.items()}, body)
        except Exception as error:
            print(error, file=sys.stderr)
            status, answer = 500, "it did not work"
        finally:
            db.close()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Server).serve_forever()
