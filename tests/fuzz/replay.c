/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs a fuzz target without libFuzzer: over every file of the folders and files that are named,
 * and over two sorts of children of each, which fuzzers find soonest: every truncation, every
 * flipped bit.
 *
 * Each input lies in a heap block of exactly its length, for the sanitizers. Exit status 1 when
 * there was no input; a violated property aborts in the target, and the input's name has been
 * printed.
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHILDREN_MAX 4096 /* of larger files only the first so many bytes are flipped or cut */

static unsigned long inputs;

static void run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size);

	if (size && !copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	inputs++;
}

static void run_with_children(uint8_t *data, size_t size)
{
	size_t n = size < CHILDREN_MAX ? size : CHILDREN_MAX;

	run(data, size);
	for (size_t cut = 0; cut < n; cut++)
		run(data, cut);
	for (size_t bit = 0; bit < n * 8; bit++) {
		data[bit / 8] ^= 1 << bit % 8;
		run(data, size);
		data[bit / 8] ^= 1 << bit % 8;
	}
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	uint8_t *data;
	FILE *file;

	if (type != FTW_F)
		return 0;
	printf("%s\n", path);
	fflush(stdout);
	file = fopen(path, "rb");
	data = malloc(st->st_size ? st->st_size : 1);
	if (!file || !data || fread(data, 1, st->st_size, file) != (size_t)st->st_size) {
		perror(path);
		exit(1);
	}
	fclose(file);
	run_with_children(data, st->st_size);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (nftw(argv[i], visit, 16, FTW_PHYS)) {
			perror(argv[i]);
			return 1;
		}
	}
	printf("%lu inputs\n", inputs);
	return inputs ? 0 : 1;
}
