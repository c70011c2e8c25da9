package mysql

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
)

var (
	// errURL is all that is said of a URL that is not understood: a part of it may be a part of the password.
	errURL = errors.New("the database URL is not understood: write mysql://user:password@host:3306/database, and in the " +
		"password %40 for @, %23 for #, %2F for /, %3F for ?, %25 for %, %20 for a blank")
	errNoDatabase = errors.New("the database URL names no database: write mysql://user:password@host:3306/database, or set database.schema")
	errTLSMode    = errors.New("sslmode in the database URL is not understood: disable, prefer, require, verify-ca or verify-full")
)

// parseURL reads the URL of a database. What stands after ? is read where it is about how to reach the server: sslmode (or
// ssl-mode, tls), sslrootcert (or ssl-ca), and socket. The rest is about sessions, character sets and time zones for the
// most, which outboxd sets itself, so that a URL made for another program may stay as it is. The errors of net/url quote
// what they read, so they go no further.
func parseURL(text string, insecure bool) (*mysql.Config, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "mysql" && u.Scheme != "mariadb" || u.Opaque != "" {
		return nil, errURL
	}
	// A raw # / or ? in a password ends the host's part early: what follows the last @ then stands where none may be.
	if strings.Contains(text, "#") || strings.Contains(u.EscapedPath()+u.RawQuery, "@") {
		return nil, errURL
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errURL
	}
	c := mysql.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	if c.DBName = strings.TrimPrefix(u.Path, "/"); strings.Contains(c.DBName, "/") {
		return nil, errURL
	}
	host, port := u.Hostname(), u.Port()
	if host == "" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = "3306"
	}
	c.Net, c.Addr = "tcp", net.JoinHostPort(host, port)
	wanted := parameters(query)
	if wanted["socket"] != "" {
		c.Net, c.Addr = "unix", wanted["socket"]
	}
	if err := secure(c, host, wanted, insecure); err != nil {
		return nil, err
	}
	c.DialFunc = dial
	c.Logger = &mysql.NopLogger{} // Errors come back all the same.
	c.MaxAllowedPacket = 0        // Asks the server.
	c.ClientFoundRows = true      // Else a renewal within one tick of the clock looks like a lost lease.
	c.InterpolateParams = true    // One round trip a statement.
	c.ParseTime = true
	c.RejectReadOnly = true
	return c, nil
}

// parameters gives the ones that are known by one name each.
func parameters(query url.Values) map[string]string {
	names := map[string]string{
		"sslmode": "tls", "ssl-mode": "tls", "tls": "tls", "ssl": "tls", "usessl": "tls",
		"sslrootcert": "ca", "ssl-ca": "ca", "sslca": "ca", "socket": "socket", "unix-socket": "socket",
	}
	known := map[string]string{}
	for name := range query {
		if as := names[strings.ReplaceAll(strings.ToLower(name), "_", "-")]; as != "" {
			known[as] = query.Get(name)
		}
	}
	return known
}

// secure sets up TLS: with a certificate that is trusted for the host, unless the URL says otherwise or the server is on
// this machine. insecure takes whatever the server offers. The words are those of libpq, of MySQL and of Go's driver.
func secure(c *mysql.Config, host string, wanted map[string]string, insecure bool) error {
	mode, said := wanted["tls"]
	switch {
	case !said && local(c.Net, host):
		mode = "disable"
	case !said && insecure:
		mode = "prefer"
	case !said:
		mode = "verify-full"
	}
	roots, err := authorities(wanted["ca"])
	if err != nil {
		return err
	}
	unchecked := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // Somebody said so.
	switch strings.ReplaceAll(strings.ToLower(mode), "_", "-") {
	case "disable", "disabled", "false", "0":
	case "prefer", "preferred":
		c.TLS, c.AllowFallbackToPlaintext = unchecked, true
	case "require", "required", "skip-verify":
		c.TLS = unchecked
	case "verify-ca":
		c.TLS = unchecked
		c.TLS.VerifyConnection = func(s tls.ConnectionState) error { return verify(s, roots) }
	case "verify-full", "verify-identity", "true", "1":
		c.TLS = &tls.Config{ServerName: host, RootCAs: roots}
	default:
		return errTLSMode
	}
	return nil
}

// authorities are the CAs of a file, or those of the system.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // The file that the URL names.
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("the file that sslrootcert of the database URL names cannot be read, or has no certificate in it")
	}
	return pool, nil
}

// verify checks the server's certificate, for whatever host it is.
func verify(s tls.ConnectionState, roots *x509.CertPool) error {
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range s.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := s.PeerCertificates[0].Verify(options); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
	}
	return nil
}

// local tells whether the server is on this machine, where no TLS is needed.
func local(network, host string) bool {
	ip := net.ParseIP(host)
	return network == "unix" || host == "localhost" || ip != nil && ip.IsLoopback()
}

// placeOf is where the tables are, in a sentence.
func placeOf(schema, database string) string {
	if schema == "" {
		schema = database
	}
	return fmt.Sprintf("database %q", schema)
}
