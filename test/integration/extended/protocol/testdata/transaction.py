import sys

import psycopg

# {page}

conn = psycopg.connect(sys.argv[1], autocommit=True)
UPDATE = "UPDATE books SET price = price + 1 WHERE id = 1"


def refused(what, write):
    try:
        write()
    except psycopg.Error as error:
        print(f"{what}: {refusal(error)}")
    else:
        print(f"{what}: done")


def in_transaction(token, nested=False):
    with conn.transaction():
        if token:
            begin_fenced(conn, token)
        if nested:
            with conn.transaction():  # a savepoint
                conn.execute(UPDATE)
        else:
            conn.execute(UPDATE)


with conn.transaction():
    begin_fenced(conn, 42)
    conn.execute("UPDATE books SET price = %s WHERE id = %s", (30, 1))
    conn.execute("DELETE FROM books WHERE id = 2")
print("set and removed")
refused("with an older one", lambda: in_transaction(41))
refused("with a higher one", lambda: in_transaction(43))
refused("in the next transaction", lambda: in_transaction(None))
refused("in autocommit", lambda: (begin_fenced(conn, 42), conn.execute(UPDATE)))
refused("behind a savepoint", lambda: in_transaction(42, nested=True))
