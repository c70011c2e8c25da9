# Calls the snippet of Django, a file named by the first argument, for each line of the standard input: port, character set,
# order, file of the payload. Says of each order whether it is paid.
import os
import pathlib
import shutil
import sys

import django
from django.conf import settings
from django.db import connection

POSTGRES = os.environ["SHOP_DIALECT"] == "postgres"
if not POSTGRES:
    import pymysql

    pymysql.install_as_MySQLdb()

app = pathlib.Path(sys.argv[1]).parent / "shop"
app.mkdir()
shutil.copy(sys.argv[1], app / "models.py")
sys.path.insert(0, str(app.parent))
settings.configure(
    INSTALLED_APPS=["shop"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends." + ("postgresql" if POSTGRES else "mysql"),
            "HOST": os.environ["SHOP_HOST"],
            "USER": os.environ["SHOP_USER"],
            "PASSWORD": os.environ["SHOP_PASSWORD"],
            "NAME": os.environ["SHOP_DATABASE"],
        }
    },
)
django.setup()
from shop.models import pay_order  # noqa: E402, after setup

for line in sys.stdin:
    port, charset, order, file = line.split()
    connection.close()
    connection.settings_dict["PORT"] = port
    connection.settings_dict["OPTIONS"] = {"sslmode": "disable"} if POSTGRES else {"charset": charset}
    payload = pathlib.Path(file).read_bytes()
    try:
        pay_order(int(order), payload.decode() if POSTGRES else payload)
        print(order, "paid")
    except Exception as error:
        print(order, "not paid:", *str(error).splitlines()[:1])
