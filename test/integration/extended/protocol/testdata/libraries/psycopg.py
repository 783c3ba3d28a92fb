"""books.py URL TOKEN: a program with psycopg 3, which changes three books in a transaction."""
import sys

import psycopg

url, token = sys.argv[1:]
try:
    with psycopg.connect(url) as conn:
        if token:
            # sqlfence {
            conn.execute("SELECT set_config('sqlfence.tokens', concat(%s::text, ' ', txid_current()), true)", (token,))
            # sqlfence }
        conn.execute("UPDATE books SET price = %s WHERE id = %s", (30, 1))
        conn.execute("INSERT INTO books (id, title, price) VALUES (%s, %s, %s)", (3, "three", 33))
        conn.execute("DELETE FROM books WHERE id = %s", (2,))
    print("ok")
except psycopg.Error as e:
    print(e.sqlstate)  # refusal
