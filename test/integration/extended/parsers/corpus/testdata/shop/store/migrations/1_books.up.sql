CREATE TABLE books (id BIGSERIAL PRIMARY KEY, isbn TEXT, title TEXT, price INTEGER);
CREATE TABLE `prices` (book_id UUID, "day" DATE, price INTEGER, PRIMARY KEY (book_id, "day"));
CREATE TABLE readers (id UUID PRIMARY KEY DEFAULT gen_random_uuid(), name TEXT);
UPDATE books SET price = 0;
