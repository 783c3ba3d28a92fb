package database

import (
	"errors"
	"net/url"
	"strings"
)

// errURL contains no part of the URL, because net/url's errors quote the faulty part, which may be the password.
var errURL = errors.New("the data source name isn't a URL; a special character in a password is written as %40 " +
	"for @, %2F for /, %3A for :, %23 for # and %25 for %")

func parseURL(dsn string) (u *url.URL, secrets []string, err error) {
	u, err = url.Parse(dsn)
	if err != nil {
		return nil, nil, errURL
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, nil, errURL
	}
	if password, ok := u.User.Password(); ok {
		secrets = appendForms(secrets, password)
	}
	for key, values := range query {
		if isSecret(key) {
			for _, v := range values {
				secrets = appendForms(secrets, v)
			}
		}
	}
	return u, secrets, nil
}

// isSecret reports whether a parameter is a password, such as password and sslpassword; but not passfile, a
// path, nor allowNativePasswords and the like.
func isSecret(key string) bool {
	key = strings.ToLower(key)
	if key == "passfile" || strings.HasPrefix(key, "allow") {
		return false
	}
	return strings.Contains(key, "pass") || strings.Contains(key, "pwd") || strings.Contains(key, "secret")
}

// appendForms appends a password in plain form, and in the forms that a URL may contain.
func appendForms(to []string, password string) []string {
	if password == "" {
		return to
	}
	_, user, _ := strings.Cut(url.UserPassword("", password).String(), ":")
	for _, form := range []string{password, user, url.QueryEscape(password), url.PathEscape(password)} {
		if form != "" {
			to = append(to, form)
		}
	}
	return to
}
