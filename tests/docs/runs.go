package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Run is what a tag says about the execution of a block of commands.
type Run struct {
	Test    string   // that executes the block; "" if none does
	Same    bool     // the test executes the same commands in words of its own, and does not read them from the document
	Where   string   // "" means in the lab's folder
	Without []string // programs whose lines are left out
	Reason  string   // why nothing is executed, or why these lines are not
}

// Places where a test executes a block, besides the lab's folder.
const (
	InCheckout     = "in the checkout"
	InClone        = "in a clone"            // of the checkout, with an empty backend
	InCloneOfState = "in a clone with state" // of the checkout, with the lab's backend
)

var (
	runs = regexp.MustCompile(`^runs: (as )?(Test\w+)( in the checkout| in a clone with state| in a clone)?` +
		`(?:, without ([a-z-]+(?: and [a-z-]+)*), because (.+))?$`)
	none = regexp.MustCompile(`^runs: not here, because (.+)$`)
)

// Run returns what the block's tag says.
func (b Block) Run() (Run, error) {
	if found := none.FindStringSubmatch(b.Tag); found != nil {
		return Run{Reason: found[1]}, nil
	}
	found := runs.FindStringSubmatch(b.Tag)
	if found == nil {
		return Run{}, fmt.Errorf("%s:%d: %q does not say whether a test runs these commands; write above the block <!-- runs: TestNAME -->, "+
			"<!-- runs: as TestNAME -->, or <!-- runs: not here, because … -->", b.Document, b.Line, b.Tag)
	}
	run := Run{Test: found[2], Same: found[1] != "", Where: strings.TrimSpace(found[3]), Reason: found[5]}
	if found[4] != "" {
		run.Without = strings.Split(found[4], " and ")
	}
	return run, nil
}

// Omits reports whether a command is not executed although its block is.
func (r Run) Omits(words []string) bool { return slices.Contains(r.Without, words[0]) }

// Step is a block that a test executes, with its quoted output.
type Step struct {
	Document string
	Line     int
	Where    string
	Commands string
	Quoted   []string
}

// Steps returns the blocks of a document that a test executes, in order.
func Steps(test, document, text string) ([]Step, error) {
	var steps []Step
	blocks := Blocks(document, text)
	for i, block := range blocks {
		if block.Language != "sh" {
			continue
		}
		run, err := block.Run()
		if err != nil {
			return nil, err
		}
		if run.Test != test || run.Same {
			continue
		}
		step := Step{Document: document, Line: block.Line, Where: run.Where, Commands: strings.Join(run.lines(block), "\n")}
		if i+1 < len(blocks) && blocks[i+1].isOutput() {
			step.Quoted = blocks[i+1].Lines
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// lines returns the lines of a block without those of a program that is left out.
func (r Run) lines(block Block) []string {
	return slices.DeleteFunc(slices.Clone(block.Lines), func(line string) bool { return slices.ContainsFunc(Simple(line), r.Omits) })
}

// isOutput reports whether the block quotes what the commands before it print. Another one has the tag "words: " and where they are from.
func (b Block) isOutput() bool { return b.Language == "" && !strings.HasPrefix(b.Tag, "words: ") }

// Readers returns the paths of the documents whose commands a lab can run: the README, and those in docs. root is the repository.
func Readers(root string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err == nil {
		_, err = os.Stat(filepath.Join(root, "README.md"))
	}
	for i, file := range files {
		files[i] = "docs/" + filepath.Base(file)
	}
	return append([]string{"README.md"}, files...), err
}
