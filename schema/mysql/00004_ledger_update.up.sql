-- +goose Up
-- +goose StatementBegin
CREATE TRIGGER IF NOT EXISTS sqlfence_ledger_update_v1 AFTER UPDATE ON fencing_tokens FOR EACH ROW
BEGIN
	IF NOT (NEW.name <=> OLD.name) OR COALESCE(NEW.token, 0) < COALESCE(OLD.token, 0) THEN
		SIGNAL SQLSTATE '45L01' SET MESSAGE_TEXT = 'sqlfence: tokens in fencing_tokens never fall, and its names are kept';
	END IF;
END;
-- +goose StatementEnd
