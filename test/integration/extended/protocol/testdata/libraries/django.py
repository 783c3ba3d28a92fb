"""books.py URL TOKEN: a program with Django's ORM, which changes three books in a transaction."""
import sys
from urllib.parse import unquote, urlsplit

import django
from django.conf import settings

address, token = sys.argv[1:]
url = urlsplit(address)
settings.configure(DATABASES={"default": {
    "ENGINE": "django.db.backends.postgresql", "NAME": url.path[1:], "HOST": url.hostname, "PORT": url.port,
    "USER": unquote(url.username), "PASSWORD": unquote(url.password or "")}})
django.setup()

from django.db import DatabaseError, connection, models, transaction


class Book(models.Model):
    id = models.BigIntegerField(primary_key=True)
    title = models.CharField(max_length=100)
    price = models.BigIntegerField()

    class Meta:
        app_label, db_table = "shop", "books"


try:
    with transaction.atomic():
        if token:
            # sqlfence {
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('sqlfence.tokens', concat(%s, ' ', txid_current()), true)", [token])
            # sqlfence }
        book = Book.objects.get(id=1)
        book.price = 30
        book.save()
        Book.objects.create(id=3, title="three", price=33)
        Book.objects.filter(id=2).delete()
    print("ok")
except DatabaseError as e:
    print(e.__cause__.pgcode)  # refusal
