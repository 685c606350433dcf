// Package register replaces external-secrets' list of all generators. The lab uses none.
package register
