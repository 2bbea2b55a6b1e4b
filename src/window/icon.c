/*
 * See icon.h. The drawing is that of org.paddock.Window.svg.
 */
#include "defs.h"

#include "icon.h"

#include <math.h>

#include "poison.h"

static const int SIZES[] = { 22, 32, 48 };

static void draw_fence(cairo_t *c)
{
	static const double posts[] = { 8, 13.3, 18.7, 24 }, rails[] = { 13.5, 19.5 };

	cairo_new_path(c);
	cairo_arc(c, 24, 8, 8, -G_PI / 2, 0);
	cairo_arc(c, 24, 24, 8, 0, G_PI / 2);
	cairo_arc(c, 8, 24, 8, G_PI / 2, G_PI);
	cairo_arc(c, 8, 8, 8, G_PI, 3 * G_PI / 2);
	cairo_close_path(c);
	cairo_set_source_rgb(c, 0x16 / 255.0, 0xa3 / 255.0, 0x4a / 255.0);
	cairo_fill(c);
	cairo_set_source_rgb(c, 1, 1, 1);
	cairo_set_line_width(c, 2.2);
	cairo_set_line_cap(c, CAIRO_LINE_CAP_ROUND);
	for (size_t i = 0; i < ELEMS(posts); i++) {
		cairo_move_to(c, posts[i], 24);
		cairo_line_to(c, posts[i], 9);
	}
	for (size_t i = 0; i < ELEMS(rails); i++) {
		cairo_move_to(c, 5, rails[i]);
		cairo_line_to(c, 27, rails[i]);
	}
	cairo_stroke(c);
}

static void draw_count(cairo_t *c, unsigned pending)
{
	g_autofree char *text = pending > 99 ? g_strdup("99+") : g_strdup_printf("%u", pending);
	cairo_text_extents_t at;

	cairo_arc(c, 22, 22, 10, 0, 2 * G_PI);
	cairo_set_source_rgb(c, 0xdc / 255.0, 0x26 / 255.0, 0x26 / 255.0);
	cairo_fill(c);
	cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_BOLD);
	cairo_set_font_size(c, strlen(text) > 2 ? 10 : 14);
	cairo_text_extents(c, text, &at);
	cairo_move_to(c, 22 - at.width / 2 - at.x_bearing, 22 - at.height / 2 - at.y_bearing);
	cairo_set_source_rgb(c, 1, 1, 1);
	cairo_show_text(c, text);
}

static GVariant *pixmap(int size, unsigned pending)
{
	cairo_surface_t *s = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, size, size);
	cairo_t *c = cairo_create(s);
	g_autoptr(GByteArray) bytes = g_byte_array_new();
	const unsigned char *data;
	GVariant *ret;

	cairo_scale(c, size / 32.0, size / 32.0);
	draw_fence(c);
	if (pending)
		draw_count(c, pending);
	cairo_surface_flush(s);
	data = cairo_image_surface_get_data(s);
	for (int y = 0; y < size; y++)
		for (int x = 0; x < size; x++) {
			guint32 pixel;

			memcpy(&pixel, data + y * cairo_image_surface_get_stride(s) + x * 4, sizeof(pixel));
			pixel = GUINT32_TO_BE(pixel);
			g_byte_array_append(bytes, (const guint8 *)&pixel, sizeof(pixel));
		}
	ret = g_variant_new("(ii@ay)", size, size,
			    g_variant_new_fixed_array(G_VARIANT_TYPE_BYTE, bytes->data, bytes->len, 1));
	cairo_destroy(c);
	cairo_surface_destroy(s);
	return ret;
}

GVariant *icon_pixmaps(unsigned pending)
{
	GVariantBuilder all;

	g_variant_builder_init(&all, G_VARIANT_TYPE("a(iiay)"));
	for (size_t i = 0; i < ELEMS(SIZES); i++)
		g_variant_builder_add_value(&all, pixmap(SIZES[i], pending));
	return g_variant_builder_end(&all);
}
