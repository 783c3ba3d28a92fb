-- name: AddReader :one
INSERT INTO readers (id, name) VALUES (@id::uuid, @name) RETURNING id;

-- name: InGo :exec
DELETE FROM readers WHERE id = sqlc.arg('id');

-- name: AddRandom :exec
INSERT INTO readers (id, name) VALUES (gen_random_uuid(), @name);
