package main

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// snippetFiles has one file in each folder: dialect, then name.
//
//go:embed snippets
var snippetFiles embed.FS

// snippetRow is a snippet in a list.
type snippetRow struct {
	Name     string `json:"name"`
	Stack    string `json:"stack"`
	Dialects string `json:"dialects"`
	Executed bool   `json:"executed"` // integration/snippet_test.go runs it, with the libraries named in docs/writing.md
}

// snippetList is what there is; of a language the plain driver comes first.
func snippetList() []snippetRow {
	list := []snippetRow{
		{Name: "php", Stack: "PHP: PDO", Executed: true},
		{Name: "php-laravel", Stack: "PHP: Laravel", Executed: true},
		{Name: "java", Stack: "Java: JDBC", Executed: true},
		{Name: "java-spring", Stack: "Java: Spring JdbcTemplate", Executed: true},
		{Name: "java-jpa", Stack: "Java: JPA, Hibernate"},
		{Name: "python", Stack: "Python: DB-API", Executed: true},
		{Name: "python-django", Stack: "Python: Django", Executed: true},
		{Name: "python-sqlalchemy", Stack: "Python: SQLAlchemy", Executed: true},
		{Name: "node", Stack: "Node: pg, mysql2", Executed: true},
		{Name: "dotnet", Stack: ".NET: Dapper"},
		{Name: "ruby", Stack: "Ruby: pg, mysql2", Executed: true},
		{Name: "ruby-rails", Stack: "Ruby: Rails", Executed: true},
		{Name: "go", Stack: "Go: package outbox", Executed: true},
		{Name: "psql", Stack: "script for psql", Executed: true},
		{Name: "mysql", Stack: "script for mysql and mariadb", Executed: true},
	}
	for i := range list {
		list[i].Dialects = strings.Join(snippetDialects(list[i].Name), ", ")
	}
	return list
}

func (p *program) snippetCommand() *cobra.Command {
	var out output
	var of string
	cmd := &cobra.Command{
		Use: "snippet [LANG]", Short: "Print how an application writes a message, in its own language",
		Long: "snippet prints a source file of a few lines that changes a table of the application and writes a message in the same\n" +
			"transaction. Without LANG it lists what there is, and which are executed by outboxd's own tests.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%s takes one language; without it, it lists them", cmd.CommandPath())
			}
			return out.check()
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return rows(p.stdout, out, snippetList())
			}
			text, err := snippetOf(args[0], of)
			if err != nil {
				return err
			}
			_, err = p.stdout.Write(text)
			return err
		},
	}
	cmd.Flags().StringVar(&of, "dialect", "", "postgres or mysql (MariaDB too); without it, the first that the list names")
	out.flag(cmd)
	return cmd
}

// snippetOf is the file of a name and a dialect; "" is the first that there is.
func snippetOf(name, of string) ([]byte, error) {
	if !slices.ContainsFunc(snippetList(), func(row snippetRow) bool { return row.Name == name }) {
		return nil, usagef("there is no snippet %q; outboxd snippet lists them", name)
	}
	dialects := snippetDialects(name)
	switch {
	case of == "":
		of = dialects[0]
	case !slices.Contains(dialects, of):
		return nil, usagef("there is a snippet %s for --dialect %s only", name, strings.Join(dialects, " or "))
	}
	files, err := fs.Glob(snippetFiles, path.Join("snippets", of, name, "*"))
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("snippet %s of %s: %d files, want one (%w)", name, of, len(files), err)
	}
	return snippetFiles.ReadFile(files[0])
}

// snippetDialects are those that have a snippet of this name.
func snippetDialects(name string) (dialects []string) {
	for _, of := range []string{"postgres", "mysql"} {
		if stat, err := fs.Stat(snippetFiles, path.Join("snippets", of, name)); err == nil && stat.IsDir() {
			dialects = append(dialects, of)
		}
	}
	return dialects
}
