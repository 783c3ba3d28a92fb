INSERT INTO books (title) VALUES ('nothing sends this');
