-- name: CreateBook :one
INSERT INTO books (isbn, title, price) VALUES (@isbn, @title, @price) RETURNING *;

-- name: CreateTwoBooks :many
INSERT INTO books (isbn, title, price)
VALUES (@isbn1, @title1, @price1), (@isbn2, @title2, @price2)
RETURNING *;

-- name: SetPrice :execrows
UPDATE books SET price = @price WHERE id = @id;

-- name: SaveBook :one
-- The whole record, but for the mark, which only sqlfence writes.
UPDATE books
SET title = @title, price = @price, prequel_id = @prequel_id, deleted_at = @deleted_at
WHERE id = @id
RETURNING *;

-- name: RaisePrices :execrows
UPDATE books SET price = price + @amount WHERE price >= @least;

-- name: UpsertBooks :many
INSERT INTO books (isbn, title, price)
VALUES (@isbn1, @title1, @price1), (@isbn2, @title2, @price2)
ON CONFLICT (isbn) DO UPDATE SET title = excluded.title, price = excluded.price
RETURNING *;

-- name: DeleteBook :execrows
DELETE FROM books WHERE id = @id;

-- name: SoftDeleteBook :execrows
UPDATE books SET deleted_at = @deleted_at WHERE id = @id AND deleted_at IS NULL;

-- name: ListBooks :many
SELECT * FROM books WHERE deleted_at IS NULL ORDER BY id;

-- name: GetBook :one
SELECT * FROM books WHERE id = @id;

-- name: BookWithSequels :many
SELECT sqlc.embed(b), s.isbn AS sequel FROM books b JOIN books s ON s.prequel_id = b.id WHERE b.id = @id ORDER BY s.id;
