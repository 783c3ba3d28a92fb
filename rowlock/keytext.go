package rowlock

import (
	"bytes"
	"encoding/json"
	"strings"
)

// parseKey reads a key from the JSON array that rowlocks and [HeldLock] have.
func parseKey(text string) (CompositeKey, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var key CompositeKey
	if err := d.Decode(&key); err != nil || len(key) == 0 {
		return nil, invalid("the row %q is not a JSON array of a key's values", text)
	}
	for i, v := range key {
		if n, ok := v.(json.Number); ok {
			integer, err := n.Int64()
			if err != nil {
				return nil, invalid("the row %q has a key that is neither an integer nor a text", text)
			}
			key[i] = integer
		}
	}
	return key, nil
}

// keyText spells a key as the database does, with comma between the values.
func keyText(key CompositeKey, comma string) (string, error) {
	parts := make([]string, len(key))
	for i, v := range key {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false) // nor do the databases
		if err := e.Encode(v); err != nil {
			return "", err
		}
		parts[i] = strings.TrimSuffix(b.String(), "\n")
	}
	return "[" + strings.Join(parts, comma) + "]", nil
}
