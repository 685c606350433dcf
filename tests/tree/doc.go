// Package tree builds the tree below kubernetes/ as Flux does for each stack, with the settings of its stack file, and checks the
// objects that come out: against the schemas of their kinds, against each other, and against the rules of the tree.
//
// It is a module of its own because of what only these tests need: kustomize, the schemas' validation and Helm. Nothing here asks a
// cluster. The CRDs come out of the Go modules from which the lab takes them (lab/tools), in the versions that are pinned there.
package tree
