#include "object/global_heap.h"
#include "object/value_heap.h"
#include "offline/check_private.h"

int h5_check_add_reference(struct h5_checker *checker, uint64_t address, uint32_t index)
{
	bool first;
	int rc = h5_check_values_add(&checker->values, address, index, &first);

	if (!rc && first)
		rc = h5_global_heap_check(checker->file, address);
	return h5_damage_note(&checker->damage, rc);
}

static int add_reference(void *checker, uint64_t address, uint32_t index)
{
	return h5_check_add_reference(checker, address, index);
}

int h5_check_add_references(struct h5_checker *checker, const struct h5_datatype *type,
			    const uint8_t *element)
{
	int rc = h5_value_heap_walk(checker->file, type, element, add_reference, checker);

	if (rc == -EUCLEAN || rc == -ENOTSUP || rc == -EIO) {
		checker->values.incomplete = true;
		rc = 0;
	}
	return rc;
}

static int tell_wrong(void *arg, uint64_t address, uint32_t index, unsigned count, unsigned at_least)
{
	struct h5_checker *checker = arg;

	if (count < at_least)
		return h5_damage_note(
			&checker->damage,
			h5_fail(-EUCLEAN, address,
				"global heap: object %u counts %u values that refer to it, but there "
				"are more",
				index, count));
	/* How many there are was not counted beyond two. */
	if (at_least == 1)
		h5_check_tell_excess(checker,
				     h5_fail(-EOVERFLOW, address,
					     "global heap: object %u counts %u values that refer to it, "
					     "but there is one",
					     index, count));
	return 0;
}

int h5_check_heap(struct h5_checker *checker)
{
	const struct h5_check *check = checker->check;
	int rc;

	checker->path = "(global heap)";
	if (check->damaged || check->unknown || checker->usage.incomplete)
		checker->values.incomplete = true;
	if (!h5_check_values_are_known(&checker->values))
		return 0;
	rc = h5_check_values_count(&checker->values, checker->file, tell_wrong, checker);
	if (check->damaged || rc)
		checker->values.incomplete = true;
	return h5_damage_note(&checker->damage, rc);
}
