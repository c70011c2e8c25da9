package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// config makes what every connection starts from. The error is a mistake of the configuration and names the file.
func (t *TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t == nil {
		return c, nil
	}
	c.ServerName = t.ServerName
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("webhook.tls.ca_file: %w", fileError(err))
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("webhook.tls.ca_file: %s holds no certificate in PEM", t.CAFile)
		}
	}
	if t.CertFile == "" {
		return c, nil
	}
	for key, name := range map[string]string{"cert_file": t.CertFile, "key_file": t.KeyFile} {
		if _, err := os.ReadFile(name); err != nil {
			return nil, fmt.Errorf("webhook.tls.%s: %w", key, fileError(err))
		}
	}
	if _, err := t.keyPair(); err != nil {
		return nil, fmt.Errorf("webhook.tls.cert_file: %w", err)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.keyPair() }
	return c, nil
}

// keyPair reads our certificate. It is asked again for every connection, since certificates are renewed in place.
func (t *TLS) keyPair() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return nil, fileError(err)
	case err != nil:
		return nil, fmt.Errorf("%s and %s are no certificate and its key in PEM: %w", t.CertFile, t.KeyFile, err)
	}
	return &pair, nil
}

// fileError says in one line which file could not be read, and why.
func fileError(err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return err
	}
	return fmt.Errorf("cannot read %s: %w", path.Path, path.Err)
}
