// Package docs reads the commands out of the documents, and its tests compare the documents with the code: links, commands and their flags,
// configuration keys, paths, quoted messages, and the matrix of changes.
package docs
