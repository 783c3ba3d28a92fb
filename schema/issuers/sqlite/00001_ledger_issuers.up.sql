-- +goose Up
-- +goose StatementBegin
ALTER TABLE fencing_tokens ADD COLUMN issued_at bigint;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER IF NOT EXISTS sqlfence_ledger_issued_update_v1 AFTER UPDATE OF token ON fencing_tokens
WHEN NEW.token IS NOT OLD.token
BEGIN
	UPDATE fencing_tokens SET issued_at = CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) WHERE name = NEW.name;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER IF NOT EXISTS sqlfence_ledger_issued_insert_v1 AFTER INSERT ON fencing_tokens
WHEN NEW.token > 0 AND NEW.issued_at IS NULL
BEGIN
	UPDATE fencing_tokens SET issued_at = CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) WHERE name = NEW.name;
END;
-- +goose StatementEnd
