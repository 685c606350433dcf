package probe

import "sync"

// Each calls do for all items at once, with their indices, and returns after the last call.
func Each[T any](items []T, do func(i int, item T)) {
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() { do(i, item) })
	}
	all.Wait()
}
