-- name: CreateBook :execlastid
INSERT INTO books (isbn, title, price) VALUES (?, ?, ?);

-- name: CreateTwoBooks :execrows
INSERT INTO books (isbn, title, price)
VALUES (sqlc.arg(isbn1), sqlc.arg(title1), sqlc.arg(price1)), (sqlc.arg(isbn2), sqlc.arg(title2), sqlc.arg(price2));

-- name: SetPrice :execrows
UPDATE books SET price = ? WHERE id = ?;

-- name: SaveBook :execrows
-- The whole record, but for the mark, which only sqlfence writes.
UPDATE books
SET title = ?, price = ?, prequel_id = ?, deleted_at = ?
WHERE id = ?;

-- name: RaisePrices :execrows
UPDATE books SET price = price + sqlc.arg(amount) WHERE price >= sqlc.arg(least);

-- name: UpsertBooks :execrows
INSERT INTO books (isbn, title, price)
VALUES (sqlc.arg(isbn1), sqlc.arg(title1), sqlc.arg(price1)), (sqlc.arg(isbn2), sqlc.arg(title2), sqlc.arg(price2))
ON DUPLICATE KEY UPDATE title = VALUES(title), price = VALUES(price);

-- name: DeleteBook :execrows
DELETE FROM books WHERE id = ?;

-- name: SoftDeleteBook :execrows
UPDATE books SET deleted_at = ? WHERE id = ? AND deleted_at IS NULL;

-- name: ListBooks :many
SELECT * FROM books WHERE deleted_at IS NULL ORDER BY id;

-- name: GetBook :one
SELECT * FROM books WHERE id = ?;

-- name: BookWithSequels :many
SELECT sqlc.embed(b), s.isbn AS sequel FROM books b JOIN books s ON s.prequel_id = b.id WHERE b.id = ? ORDER BY s.id;
