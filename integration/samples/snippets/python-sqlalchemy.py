# Calls the snippet of SQLAlchemy, a file named by the first argument, for each line of the standard input: port, character
# set, order, file of the payload. Says of each order whether it is paid.
import os
import pathlib
import runpy
import sys

import sqlalchemy
from sqlalchemy.orm import Session

pay_order = runpy.run_path(sys.argv[1])["pay_order"]
host, user, password, database = (os.environ["SHOP_" + name] for name in ("HOST", "USER", "PASSWORD", "DATABASE"))


def connect(port, charset):
    at = f"{user}:{password}@{host}:{port}/{database}"
    if os.environ["SHOP_DIALECT"] == "postgres":
        return sqlalchemy.create_engine("postgresql+psycopg2://" + at, client_encoding=charset, connect_args={"sslmode": "disable"})
    return sqlalchemy.create_engine("mysql+pymysql://" + at, connect_args={"charset": charset})


for line in sys.stdin:
    port, charset, order, file = line.split()
    try:
        with Session(connect(port, charset)) as session:
            pay_order(session, int(order), pathlib.Path(file).read_bytes())
        print(order, "paid")
    except Exception as error:
        print(order, "not paid:", *str(error).splitlines()[:1])
