package main

import (
	"fmt"
	"strconv"
	"strings"
)

// name is the destination's.
func (a *answers) name() string {
	return map[string]string{"kafka": "events", "webhook": "commands", "stdout": "screen"}[a.destination]
}

// text is the configuration with its comments.
func (a *answers) text() string {
	parts := []string{a.head(), a.databasePart(), a.destinationPart(), a.routePart()}
	return strings.Join(parts, "\n")
}

func (a *answers) head() string {
	return "# The configuration of outboxd, begun by outboxd init. docs/configuration.md has every key and its default.\n" +
		"# Paths of files are seen from where outboxd is started.\n"
}

func (a *answers) databasePart() string {
	form := map[string]string{
		"postgres": "postgres://user:password@host:5432/shop",
		"mysql":    "mysql://user:password@host:3306/shop",
		"sqlite":   "sqlite:///var/lib/shop/shop.db",
	}[a.database]
	source := "url_env: " + strconv.Quote(a.urlEnv)
	if a.urlFile != "" {
		source = "url_file: " + strconv.Quote(a.urlFile)
	}
	text := "database:\n" +
		"  # The URL can hold a password, so it stands elsewhere. It is like this:\n" +
		"  #   " + form + "\n" +
		"  " + source + "\n"
	if a.database != "sqlite" {
		text += "  # schema: shop          # where the tables are; left out: where the URL leads\n"
	}
	return text + "  # migrate: true         # run makes the tables by itself; left out: outboxd migrate up does\n"
}

func (a *answers) destinationPart() string {
	text := "destinations:\n  " + a.name() + ":\n"
	switch a.destination {
	case "kafka":
		return text + a.kafkaPart()
	case "webhook":
		return text + a.webhookPart()
	default:
		return text + "    stdout: {}              # each message is a line of JSON; for trials\n"
	}
}

func (a *answers) kafkaPart() string {
	var brokers []string
	for _, broker := range splitList(a.brokers) {
		brokers = append(brokers, strconv.Quote(broker))
	}
	return "    kafka:\n" +
		"      brokers: [" + strings.Join(brokers, ", ") + "]\n" +
		"      topic: \"" + defaultTopic + "\"   # topics have to exist; {type} can stand in it, too\n" +
		"      # tls: {}                               # with the system's roots, or {ca_file: ca.pem}\n" +
		"      # sasl: {mechanism: SCRAM-SHA-512, username: shop, password_file: ./events-password}\n"
}

func (a *answers) webhookPart() string {
	return "    webhook:\n" +
		"      url: " + strconv.Quote(a.url) + "\n" +
		"      # How long the receiver remembers an Idempotency-Key; write less than it promises. A send whose answer was lost\n" +
		"      # is made again within that time, and past it is left to a person. never: it is not made again at all.\n" +
		"      dedupe: " + strconv.Quote(a.dedupe) + "\n" +
		a.authPart() +
		"      # tls: {ca_file: ca.pem}              # left out: the system's roots\n" +
		"      # secrets_file: ./commands-secret     # whsec_…: each request is signed as Standard Webhooks says\n" +
		"      # outcomes: {\"404\": fail}             # what the receiver's statuses mean, where it is not the usual\n" +
		"    # width: 8              # sends at once, of all relays together\n" +
		"    # rate: 50/s            # sends started, of all relays together\n" +
		"    # timeout: 20s          # of one send\n"
}

func (a *answers) authPart() string {
	switch a.auth {
	case "bearer":
		return "      bearer_file: " + a.secretFile() + "\n"
	case "basic":
		return fmt.Sprintf("      basic: {username: %s, password_file: %s}\n", strconv.Quote(a.username), a.secretFile())
	case "oauth2":
		return fmt.Sprintf("      oauth2: {token_url: %s, client_id: %s, client_secret_file: %s}\n",
			strconv.Quote(a.tokenURL), strconv.Quote(a.clientID), a.secretFile())
	}
	return "      # bearer_file: ./commands-token       # or basic, or oauth2\n"
}

// secretFile is the file that we authenticate with; "" where there is none.
func (a *answers) secretFile() string {
	return map[string]string{
		"bearer": "./commands-token", "basic": "./commands-password", "oauth2": "./commands-client-secret",
	}[a.auth]
}

func (a *answers) routePart() string {
	text := "routes:                     # the first whose match fits takes a message\n" +
		"  - match: " + strconv.Quote(a.match) + "              # its aggregatetype, or its type where that is NULL\n" +
		"    to: " + a.name() + "\n"
	if a.ordered != "" {
		text += "    ordered: " + a.ordered + "          # messages of one aggregateid may overtake each other\n"
	}
	return text + "    # budget: 20            # sends that may be charged; the last one ends a message as failed\n"
}

// next says what is to be done with the file.
func (a *answers) next() string {
	lines := []string{"\nNow:"}
	if file := a.secretFile(); file != "" {
		lines = append(lines, "put the secret into "+file+", so that only outboxd can read it")
	}
	for _, command := range []string{"config validate", "migrate up", "dest test " + a.name(), "run"} {
		lines = append(lines, "outboxd "+command+" -c "+a.output)
	}
	return strings.Join(lines, "\n  ")
}
