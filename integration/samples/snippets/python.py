# Calls the snippet of Python, a file named by the first argument, for each line of the standard input: port, character set,
# order, file of the payload. Says of each order whether it is paid.
import os
import pathlib
import runpy
import sys

pay_order = runpy.run_path(sys.argv[1])["pay_order"]
host, user, password, database = (os.environ["SHOP_" + name] for name in ("HOST", "USER", "PASSWORD", "DATABASE"))


def connect(port, charset):
    if os.environ["SHOP_DIALECT"] == "postgres":
        import psycopg2

        connection = psycopg2.connect(host=host, port=port, user=user, password=password, dbname=database, sslmode="disable")
        connection.set_client_encoding(charset)
        return connection
    import pymysql

    return pymysql.connect(host=host, port=int(port), user=user, password=password, database=database, charset=charset)


for line in sys.stdin:
    port, charset, order, file = line.split()
    try:
        pay_order(connect(port, charset), int(order), pathlib.Path(file).read_bytes())
        print(order, "paid")
    except Exception as error:
        print(order, "not paid:", *str(error).splitlines()[:1])
