package postgres

import (
	"errors"
	"fmt"
	"strings"
)

// placeholder stands before every name of ours in SQL, so that the text runs as it is in psql and in any schema when
// rendered.
const placeholder = "/*schema.*/"

// render puts the schema before every name of ours. An empty schema leaves the text as it is, for the search_path.
func render(text, schema string) (string, error) {
	if schema == "" {
		return text, nil
	}
	quoted, err := quote(schema)
	if err != nil {
		return "", err
	}
	text = strings.ReplaceAll(text, placeholder, quoted+".")
	if strings.Contains(text, "/*schema") {
		return "", errors.New("a placeholder of the SQL text is misspelt: only " + placeholder + " is known")
	}
	return text, nil
}

// quote checks a name and quotes it for SQL. PostgreSQL cuts names at 63 bytes, and two that are cut may become one.
func quote(name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("the schema's name is empty")
	case len(name) > 63:
		return "", fmt.Errorf("the schema's name %.63q… is too long: 63 bytes at most", name)
	case strings.ContainsRune(name, 0):
		return "", fmt.Errorf("the schema's name %q has a NUL in it", name)
	case strings.HasPrefix(name, "pg_"):
		return "", fmt.Errorf("the schema's name %q belongs to PostgreSQL: pg_ may not begin it", name)
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`, nil
}
