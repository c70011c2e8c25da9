# Runs a test of Django, the module named by the second argument, with the snippet of Django, a file named by the first one.
# The database is there already, with outboxd's tables: so no test database is made.
import os
import pathlib
import shutil
import sys
import unittest

import django
from django.conf import settings

app = pathlib.Path(sys.argv[1]).parent / "shop"
app.mkdir()
shutil.copy(sys.argv[1], app / "models.py")
sys.path.insert(0, str(app.parent))
names = {"HOST": "HOST", "PORT": "PORT", "USER": "USER", "PASSWORD": "PASSWORD", "NAME": "DATABASE"}
database = {name: os.environ["SHOP_" + variable] for name, variable in names.items()}
settings.configure(INSTALLED_APPS=["shop"], DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **database}})
django.setup()
unittest.main(module=sys.argv[2], argv=sys.argv[:1])
