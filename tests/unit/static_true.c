/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A program that the dynamic linker never sees. */
int main(void)
{
	return 0;
}
