-- +goose Up
-- +goose StatementBegin
CREATE TRIGGER IF NOT EXISTS sqlfence_ledger_first_insert_v1 AFTER INSERT ON fencing_tokens FOR EACH ROW
BEGIN
	DECLARE served bigint DEFAULT 0;
	IF COALESCE(NEW.token, 0) > 0 AND NEW.name <> '' THEN
		SELECT COALESCE(MAX(t.token), 0) INTO served FROM fencing_tokens AS t WHERE t.name = ''
			LIMIT 1 LOCK IN SHARE MODE;
		IF NEW.token <= served THEN
			SIGNAL SQLSTATE '40001' SET MESSAGE_TEXT = 'sqlfence: the first token of a name has to be above those of names that were deleted';
		END IF;
	END IF;
END;
-- +goose StatementEnd
