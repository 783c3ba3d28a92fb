-- +goose Up
-- +goose StatementBegin
CREATE TRIGGER IF NOT EXISTS sqlfence_ledger_delete_v1 BEFORE DELETE ON fencing_tokens FOR EACH ROW
BEGIN
	IF OLD.name = '' OR COALESCE(OLD.token, 0) >
		COALESCE((SELECT t.token FROM fencing_tokens AS t WHERE t.name = ''), 0) THEN
		SIGNAL SQLSTATE '45L01' SET MESSAGE_TEXT = 'sqlfence: fencing_tokens keeps its names, so that no token is issued twice: DELETE and REPLACE are refused';
	END IF;
END;
-- +goose StatementEnd
