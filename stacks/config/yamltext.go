package config

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
)

// maxFile is the largest size of a stack file. It is far above any usable length: the engine passes the configuration in one
// environment variable, which Linux limits to 128 KiB.
const maxFile = 1 << 20

// checkText checks the size, the encoding and the characters of a text before it is parsed as YAML.
func checkText(text []byte) error {
	if len(text) > maxFile {
		return fmt.Errorf("has %d bytes, which no stack file has; write at most %d", len(text), maxFile)
	}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if !utf8.Valid(line) {
			return fmt.Errorf("line %d: is not UTF-8; save the file in this encoding", number)
		}
		if number == 1 && bytes.HasPrefix(line, []byte("\uFEFF")) {
			return fmt.Errorf("line 1: begins with a byte order mark; save the file without")
		}
		if char, hidden := invisible(string(line)); hidden {
			return fmt.Errorf("line %d: holds the character U+%04X, which is invisible; remove it", number, char)
		}
	}
	return nil
}

// invisible returns the first invisible character of a value. Line breaks and tabs are allowed.
func invisible(value string) (rune, bool) {
	for _, char := range value {
		if char != '\t' && char != '\n' && !cluster.IsVisible(char) {
			return char, true
		}
	}
	return 0, false
}

// tabs returns the first line with a tab outside of comments and of texts in YAML's block style; 0 if there is none. Parsers
// differ in the meaning of a tab between keys and values.
func tabs(text []byte, document *yaml.Node) int {
	if !bytes.Contains(text, []byte("\t")) {
		return 0
	}
	blocks := blocksOf(document, 0, nil)
	number := 0
	for line := range bytes.Lines(text) {
		number++
		for len(blocks) > 0 && blocks[0].line < number && !blocks[0].holds(line) {
			blocks = blocks[1:]
		}
		inBlock := len(blocks) > 0 && blocks[0].line < number
		if !inBlock && bytes.Contains(line, []byte("\t")) && !bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) {
			return number
		}
	}
	return 0
}

// block is a text in YAML's block style, after a | or >.
type block struct {
	line        int // where the | or > is
	indentation int // indentation of the key or dash that it belongs to; the text has more
}

// holds reports whether a line after the block's first line belongs to its text.
func (b block) holds(line []byte) bool {
	return len(bytes.TrimSpace(line)) == 0 || len(line)-len(bytes.TrimLeft(line, " ")) > b.indentation
}

// blocksOf appends the blocks of a node, in the order of the text.
func blocksOf(node *yaml.Node, indentation int, blocks []block) []block {
	if node.Kind == yaml.ScalarNode && node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return append(blocks, block{line: node.Line, indentation: indentation})
	}
	for _, below := range node.Content {
		blocks = blocksOf(below, node.Column-1, blocks)
	}
	return blocks
}
