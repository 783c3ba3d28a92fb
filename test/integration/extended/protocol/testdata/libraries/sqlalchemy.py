"""books.py URL TOKEN: a program with SQLAlchemy's ORM, which changes three books in a transaction."""
import sys

from sqlalchemy import BigInteger, Column, String, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, declarative_base

Base = declarative_base()


class Book(Base):
    __tablename__ = "books"
    id = Column(BigInteger, primary_key=True, autoincrement=False)
    title = Column(String)
    price = Column(BigInteger)


url, token = sys.argv[1:]
engine = create_engine(url.replace("postgres://", "postgresql://"))
try:
    with Session(engine) as session, session.begin():
        if token:
            # sqlfence {
            session.execute(text("SELECT set_config('sqlfence.tokens', concat(:t, ' ', txid_current()), true)"), {"t": token})
            # sqlfence }
        session.get(Book, 1).price = 30
        session.add(Book(id=3, title="three", price=33))
        session.delete(session.get(Book, 2))
    print("ok")
except DBAPIError as e:
    print(e.orig.pgcode)  # refusal
