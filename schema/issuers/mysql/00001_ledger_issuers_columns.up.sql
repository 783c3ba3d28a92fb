-- +goose Up
ALTER TABLE fencing_tokens ADD COLUMN issued_by varbinary(512), ADD COLUMN issued_at bigint;
