// Package docs has the tests of the documents.
package docs
