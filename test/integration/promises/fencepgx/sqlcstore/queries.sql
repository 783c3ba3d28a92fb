-- name: SetPrice :execrows
UPDATE books SET price = @price WHERE id = @id;

-- name: RaisePrice :one
UPDATE books SET price = price + @amount WHERE id = @id RETURNING price;

-- name: SetPrices :batchexec
UPDATE books SET price = @price WHERE id = @id;

-- name: CopyBooks :copyfrom
INSERT INTO books (id, isbn, price) VALUES (@id, @isbn, @price);
