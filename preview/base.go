package main

import (
	"context"
	"fmt"
)

// base is what the change is compared with.
type base struct {
	commit string
	name   string // for people: what was asked for, and the commit
	note   string // why it is another commit than asked for, or what the difference means; "" if it is the same
}

// findBase returns the commit that a revision and the change both come from: what the revision has got since is none of the change. Without
// one, such as in a shallow clone, it is the revision itself.
func findBase(ctx context.Context, checkout, revision string) (base, error) {
	commit, err := git(ctx, checkout, "rev-parse", "--verify", revision+"^{commit}")
	if err != nil {
		return base{}, fmt.Errorf("the base %s is not here; fetch it, or name another commit: %w", revision, err)
	}
	found := base{commit: commit}
	switch common, err := git(ctx, checkout, "merge-base", commit, "HEAD"); {
	case err != nil:
		found.note = ", because no commit is known that both come from: what only the base has shows as taken back"
	case common != commit:
		found.commit, found.note = common, ", without its newer commits"
	}
	found.name = fmt.Sprintf("%s (%.12s)", revision, found.commit)
	return found, nil
}
