/* A file with values of variable length, and a model of them: tests/fixtures/global_heap_write.py. */
#ifndef H5_TESTS_HEAP_SCENE_H
#define H5_TESTS_HEAP_SCENE_H

#include "object/global_heap_write.h"
#include "object/heap_batch.h"
#include "scratch.h"

enum { COUNT = 200, ELEMENTS = 2 * COUNT, ELEMENT = 16 };

/* The file, and what it holds: strings, then sequences of numbers of 4 bytes. */
struct heap_scene {
	struct scratch scratch;
	struct h5_global_heap_writer heap;
	struct h5_heap_batch batch;
	bool batched; /* values gather in the batch */
	uint64_t at[2];
	uint64_t state; /* of the random numbers */
	struct {
		uint8_t *bytes; /* owned */
		size_t n;
	} model[ELEMENTS];
};

uint64_t heap_scene_random(struct heap_scene *s);
/* Closes the file and opens it again. */
void heap_scene_reopen(struct heap_scene *s);
int heap_scene_commit(struct heap_scene *s);
/* The model's value alone. */
void heap_scene_keep(struct heap_scene *s, unsigned i, const void *bytes, size_t n);
/* With the file of this style, whose calls go through the fault. */
void heap_scene_begin(struct heap_scene *s, const char *style, struct fault_io *fault);
void heap_scene_end(struct heap_scene *s);
uint64_t heap_scene_element_at(const struct heap_scene *s, unsigned i);
/* Into the heap alone. */
int heap_scene_put(struct heap_scene *s, const void *bytes, size_t n, uint64_t *address, uint32_t *index);
int heap_scene_give_up(struct heap_scene *s, const uint8_t *element);
/* Puts the value into the heap and makes the element refer to it, in one unit, in which the old value goes;
 * with values that gather it stays, as the file may lack it. */
int heap_scene_set(struct heap_scene *s, unsigned i, const void *bytes, size_t n);
/* A random value of n bytes, in the file and in the model. Strings hold no NUL. */
void heap_scene_set_random(struct heap_scene *s, unsigned i, size_t n);
/* Our reader sees the model, and each collection is one that libhdf5 takes. */
void heap_scene_verify(struct heap_scene *s);
/* For the judge, in a file whose path is stored in `path`. */
void heap_scene_write_model(const struct heap_scene *s, char path[128]);
/* libhdf5 sees the model. Closes the file. */
void heap_scene_judge(struct heap_scene *s);

#endif
