/* Pages: the files of a dataset that has more dimensions than one file of its view can show. The dataset is a
 * directory. Its leading indices name directories, and the last of them the file of a page, which has the
 * other dimensions: `0003/0007.png`. All names of a directory have the same number of digits, at least 4, so
 * that they are in order. Nothing is looked at to list them, since there may be any number. */
#ifndef H5_VIEW_PAGES_H
#define H5_VIEW_PAGES_H

#include "view/view.h"

struct h5_page {
	struct h5_dataspace space; /* of the page */
	uint64_t first;		   /* number of its first element in the dataset */
};

/* `leading`: how many dimensions a page lacks; with 0, the dataset is no directory, and its file is a page.
 */

/* False: it has more pages than a directory can list. */
bool h5_pages_can_list(const struct h5_dataset *dataset, unsigned leading);
/* As struct h5_view_directory_ops.find and next. */
int h5_pages_find(const struct h5_view *view, unsigned leading, const char *path, bool *is_directory);
int h5_pages_next(const struct h5_view *view, unsigned leading, uint64_t *position, char name[256],
		  bool *is_directory);
/* The page of view->part. -EOVERFLOW: the dataset has too many elements to be read. */
int h5_page_get(const struct h5_view *view, unsigned leading, struct h5_page *page);
/* The state of what a cache has of the page, which differs from page to page. */
uint64_t h5_page_state(const struct h5_page *page, uint64_t state);

#endif
