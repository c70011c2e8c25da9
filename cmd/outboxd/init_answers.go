package main

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// answers is what a configuration is made of.
type answers struct {
	database, urlFile, urlEnv string
	destination               string
	brokers                   string
	url, dedupe, ordered      string
	auth                      string
	username                  string // of basic
	tokenURL, clientID        string // of oauth2
	match                     string
	output                    string
	given                     func(flag string) bool
}

// question is what is to be known: from a flag, or from a person.
type question struct {
	flag    string
	text    string
	choices []string           // none: any text
	refuse  func(string) error // nil: what the configuration says of key
	usual   string             // what an empty answer means; "": there has to be one
	key     string             // where it stands in the file
	into    *string
	applies bool
}

// questions are all that there are. Which of them apply hangs on the answers so far.
func (a *answers) questions() []question {
	kafka, webhook := a.destination == "kafka", a.destination == "webhook"
	to := "destinations." + a.name()
	return []question{
		{flag: "database", text: "Which database holds the outbox:", choices: []string{"postgres", "mysql", "sqlite"}, into: &a.database, applies: true},
		{flag: "url-file", refuse: noURL, into: &a.urlFile, applies: a.urlFile != ""},
		{
			flag: "url-env", text: "Which environment variable holds its URL?", usual: envFallback, refuse: variableName,
			into: &a.urlEnv, applies: a.urlFile == "",
		},
		{flag: "destination", text: "Where do messages go:", choices: []string{"kafka", "webhook", "stdout"}, into: &a.destination, applies: true},
		{flag: "brokers", text: "Which brokers, as host:port, separated by commas?", key: to + ".kafka.brokers", into: &a.brokers, applies: kafka},
		{flag: "url", text: "Which URL takes the POSTs?", key: to + ".webhook.url", into: &a.url, applies: webhook},
		{
			flag: "dedupe", text: "How long does it remember an Idempotency-Key, such as 24h, or never?",
			key: to + ".webhook.dedupe", into: &a.dedupe, applies: webhook,
		},
		{
			flag: "ordered", text: "Do messages of one aggregateid have to keep their order (so far, only false can be had)?",
			key: "routes[0].ordered", into: &a.ordered, applies: webhook || a.ordered != "",
		},
		{flag: "auth", text: "How do we authenticate there:", choices: []string{"none", "bearer", "basic", "oauth2"}, usual: "none", into: &a.auth, applies: webhook},
		{flag: "username", text: "Under which name?", key: to + ".webhook.basic", into: &a.username, applies: webhook && a.auth == "basic"},
		{flag: "token-url", text: "Which URL gives the tokens?", key: to + ".webhook.oauth2.token_url", into: &a.tokenURL, applies: webhook && a.auth == "oauth2"},
		{flag: "client-id", text: "Under which client id?", key: to + ".webhook.oauth2.client_id", into: &a.clientID, applies: webhook && a.auth == "oauth2"},
		{flag: "match", text: "Which routing keys go there: one, the start of one and *, or * for all?", usual: "*", key: "routes[0].match", into: &a.match, applies: true},
	}
}

// variableName and noURL keep the URL itself, which may hold a password, out of the file.
func variableName(answer string) error {
	if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(answer) {
		return errors.New("wants the name of a variable, not what it holds")
	}
	return nil
}

func noURL(answer string) error {
	if strings.Contains(answer, "://") {
		return errors.New("wants the name of a file, not what it holds")
	}
	return nil
}

// wrong says why an answer cannot be, by itself.
func (q question) wrong() error {
	switch answer := *q.into; {
	case answer == "":
		return errors.New("wants an answer")
	case len(q.choices) > 0 && !slices.Contains(q.choices, answer):
		return errors.New("wants " + choice(q.choices))
	case q.refuse != nil:
		return q.refuse(answer)
	}
	return nil
}

// checkFlags refuses what is no answer, and what has nothing to say beside the other answers.
func (a *answers) checkFlags() error {
	if a.urlFile != "" && a.urlEnv != "" {
		return usagef("give one of --url-file and --url-env")
	}
	for _, q := range a.questions() {
		if !a.given(q.flag) {
			continue
		}
		if err := q.wrong(); err != nil {
			return usagef("--%s %w", q.flag, err)
		}
		if !q.applies && a.destination != "" {
			return usagef("--%s goes with another --destination or --auth", q.flag)
		}
	}
	return nil
}

// missing are the flags without which there is no configuration.
func (a *answers) missing() (flags []string) {
	for _, q := range a.questions() {
		switch {
		case !q.applies || *q.into != "":
		case q.flag == "url-env":
			flags = append(flags, "--url-file or --url-env")
		case q.flag == "ordered":
			flags = append(flags, "--ordered=false")
		case q.usual == "":
			flags = append(flags, "--"+q.flag)
		}
	}
	return flags
}

// fillIn puts the usual answers where there is none.
func (a *answers) fillIn() {
	for _, q := range a.questions() {
		if q.applies && *q.into == "" {
			*q.into = q.usual
		}
	}
}

// problems is what the configuration says of itself, as it would be written.
func (a *answers) problems() problems {
	l := &loaded{config: defaultConfig(), origins: map[string]string{}}
	l.decoder = decode([]byte(a.text()), &l.config)
	l.problems = l.decoder.problems
	l.check()
	return l.problems
}

// checkWhole finds a mistake in what would be written, and names the flag that it comes from.
func (a *answers) checkWhole() error {
	all := a.problems()
	if len(all) == 0 {
		return nil
	}
	from := all[0].path
	for _, q := range a.questions() {
		if q.key != "" && strings.HasPrefix(from, q.key) {
			from = "--" + q.flag
		}
	}
	return usagef("%s: %s", from, all[0].text)
}
