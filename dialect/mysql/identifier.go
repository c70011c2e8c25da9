package mysql

import (
	"errors"
	"fmt"
	"strings"
)

// placeholder stands before every name of ours in SQL, so that the text runs as it is in the database in use, and in any
// other when rendered.
const placeholder = "/*schema.*/"

// render puts the database before every name of ours. An empty one leaves the text as it is, for the database in use.
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

// quote checks a name and quotes it for SQL. MySQL manual, "Schema Object Names" and "Identifier Length Limits".
func quote(name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("the database's name is empty")
	case len([]rune(name)) > 64:
		return "", fmt.Errorf("the database's name %.64q… is too long: 64 characters at most", name)
	case strings.ContainsRune(name, 0):
		return "", fmt.Errorf("the database's name %q has a NUL in it", name)
	case strings.HasSuffix(name, " "):
		return "", fmt.Errorf("the database's name %q ends with a blank", name)
	}
	return "`" + strings.ReplaceAll(name, "`", "``") + "`", nil
}
