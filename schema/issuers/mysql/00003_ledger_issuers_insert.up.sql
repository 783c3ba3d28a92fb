-- +goose Up
-- +goose StatementBegin
CREATE TRIGGER IF NOT EXISTS sqlfence_ledger_issued_insert_v1 BEFORE INSERT ON fencing_tokens FOR EACH ROW
BEGIN
	IF NEW.token > 0 AND NEW.issued_by IS NULL AND NEW.issued_at IS NULL THEN
		SET NEW.issued_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
			NEW.issued_by = LEFT(CAST(CONCAT(USER(), ', connection ', CONNECTION_ID()) AS BINARY), 512);
	END IF;
END;
-- +goose StatementEnd
