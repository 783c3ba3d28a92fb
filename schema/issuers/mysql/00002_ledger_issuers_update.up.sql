-- +goose Up
-- +goose StatementBegin
CREATE TRIGGER IF NOT EXISTS sqlfence_ledger_issued_update_v1 BEFORE UPDATE ON fencing_tokens FOR EACH ROW
BEGIN
	IF NOT (NEW.token <=> OLD.token) THEN
		SET NEW.issued_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
			NEW.issued_by = LEFT(CAST(CONCAT(USER(), ', connection ', CONNECTION_ID()) AS BINARY), 512);
	END IF;
END;
-- +goose StatementEnd
