import sys

import psycopg

# {page}

conn = psycopg.connect(sys.argv[1], autocommit=True)


def refused(what, write):
    try:
        write()
    except psycopg.Error as error:
        print(f"{what}: {refusal(error)}")
    else:
        print(f"{what}: done")


token = take_token(conn)
print("token", token)
with conn.transaction():
    set_price(conn, 1, 30, token)
print("set")
refused("without a token", lambda: conn.execute("UPDATE books SET price = 1 WHERE id = 1"))
refused("with an older one", lambda: set_price(conn, 1, 1, token - 1))
refused("with a higher one", lambda: set_price(conn, 1, 1, token + 1))
refused("removed without a token", lambda: conn.execute("DELETE FROM books WHERE id = 2"))
refused("removed with an older one", lambda: remove(conn, 2, token - 1))
remove(conn, 2, token)
print("removed")
refused("something else", lambda: conn.execute("SELECT 1/0"))
