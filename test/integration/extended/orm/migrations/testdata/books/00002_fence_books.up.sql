-- +goose Up
ALTER TABLE books ADD COLUMN fence_token bigint NOT NULL DEFAULT 0;
